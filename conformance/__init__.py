"""Run the official array-API test suite on a numr runtime and report what it says.

``python -m conformance --runtime cpu`` finds data-apis/array-api-tests at the pinned commit,
runs it on ``numr.cpu`` and exits with 0 only where tests ran and every one of them passed.
"""
