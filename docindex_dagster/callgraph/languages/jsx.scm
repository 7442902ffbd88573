; A component that is used is called; what begins with a small letter is an element of the page.

((jsx_opening_element name: (_) @call) (#match? @call "^[A-Z]|[.]"))
((jsx_self_closing_element name: (_) @call) (#match? @call "^[A-Z]|[.]"))
