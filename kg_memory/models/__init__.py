"""The public data types: immutable, validated, and plain JSON when dumped."""
