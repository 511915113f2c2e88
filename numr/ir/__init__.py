"""What an operation is: the op table with its dtype rules."""
