"""The report about an experiment: one page with plots and tables, pictures and CSV files.

`study` arranges results, `evidence` reads the files of single runs, `charts` and `cards` describe plots in
Vega-Lite, `tables` and `rules` write parts of the page, and `page` joins them.
"""
