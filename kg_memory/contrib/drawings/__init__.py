"""Exports of a memory as a graph for graph viewers: GraphML and Cytoscape JSON."""
