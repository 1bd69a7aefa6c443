"""Settings of Sphinx for the documentation site. tools/docs_site.py prepares the pages and calls Sphinx."""

project = "Holdfast"
html_title = "Holdfast"
extensions = ["myst_parser"]
myst_heading_anchors = 6  # links to headings, named as a forge names them
myst_links_external_new_tab = False
highlight_language = "text"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/icon.svg"
html_logo = "static/icon.svg"
html_extra_path = ["extra"]
# A build contains no date, no copy of its sources and no address of another host.
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = False
html_last_updated_fmt = None
html_theme_options = {
    "navigation_with_keys": False,
    "top_of_page_buttons": [],
    "light_css_variables": {
        "color-brand-primary": "#a82a18",
        "color-brand-content": "#a82a18",
        "color-code-background": "#f4f1ea",
        "font-stack": "system-ui, sans-serif",
    },
    "dark_css_variables": {"color-brand-primary": "#ff8a72", "color-brand-content": "#ff8a72"},
}
