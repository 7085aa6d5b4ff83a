"""Drawings of a memory for other programs: GraphML, Cytoscape JSON and SVG."""
