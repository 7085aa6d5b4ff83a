"""Alternatives to the default search and reading: rerankers, graph traversal, decay, templates, a reading plan.

`MEMORYD` and `ZEPH` are the entity and fact types of these memory systems, for `Settings.ontology`.
"""

from importlib.resources import files

from kg_memory.models.ontology import read_ontology

MEMORYD, ZEPH = (read_ontology(str(files(__package__).joinpath(f"{name}.toml"))) for name in ("memoryd", "zeph"))
