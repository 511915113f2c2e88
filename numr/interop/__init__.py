"""What other libraries need to be told about numr; each module is imported by whoever uses that library."""
