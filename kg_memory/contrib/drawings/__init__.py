"""Exports of a memory as a graph drawing: GraphML and Cytoscape JSON."""
