"""Words by language (*.toml) and the page around them (letter.html, letter.css, letter.txt)."""
