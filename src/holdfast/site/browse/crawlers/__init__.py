"""What machines ask a site for: robots.txt, a sitemap, the manifest of an app."""
