"""The explorer: a web page that shows the graph, and the routes that only this page uses."""
