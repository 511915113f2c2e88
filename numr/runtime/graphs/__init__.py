"""Captured graphs: recording what a client does, and doing it again."""
