"""Rule files to checked rules: which files are meant, and what came of them, kept between runs."""
