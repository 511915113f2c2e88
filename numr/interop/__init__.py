"""What particular libraries need to be told about numr, and file formats; each module is imported when it is used."""
