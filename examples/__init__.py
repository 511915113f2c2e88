"""Programs against the array API standard, and a demo that runs them on every runtime."""
