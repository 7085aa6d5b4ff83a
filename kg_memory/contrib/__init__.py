"""Plug-ins of the command, which the library itself does not import."""
