"""One expression, evaluated exactly: values, functions, the scalar back end and its meter."""
