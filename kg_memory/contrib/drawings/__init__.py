"""Drawings of a memory for other programs: GraphML and Cytoscape JSON."""
