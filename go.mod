module github.com/wakebell/wakebell

go 1.26
