"""Ontologies of other memory systems for `Settings.ontology`: their types of entities and facts."""

from importlib.resources import files

from kg_memory.models.ontology import read_ontology

MEMORYD, ZEPH = (read_ontology(str(files(__package__).joinpath(f"{name}.toml"))) for name in ("memoryd", "zeph"))
