"""The test suites of other libraries, run on numr's runtimes, their files untouched.

``python -m tests.ecosystem --runtime cpu`` runs all suites that are installed on ``numr.cpu`` and exits with 0 only
where tests ran and none failed but those that ``expected/`` lists with a reason. ``make ecosystem`` makes an environment
with the versions that ``pyproject.toml`` pins and runs everything in it.
"""
