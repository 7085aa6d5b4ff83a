"""The public values: frozen, validated, and JSON-plain when dumped."""
