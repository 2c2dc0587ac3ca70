"""A checked rule to the parts of a program: scope and frame, passes over expressions, statements, reasons."""
