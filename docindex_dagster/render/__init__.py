"""Results as text: for a terminal (`console`), for agents (`markdown`), and as HTML for the web page (`html`)."""
