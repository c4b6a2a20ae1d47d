module example.org/goextension

go 1.24
