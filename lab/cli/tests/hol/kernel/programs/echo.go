// An echo server and its client: `echo serve`, `echo ask`.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func serve() error {
	listener, err := net.Listen("tcp", ":7000")
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer connection.Close()
			io.Copy(connection, connection)
		}()
	}
}

func ask() error {
	connection, err := net.Dial("tcp", "server:7000")
	if err != nil {
		return err
	}
	defer connection.Close()
	asked := "hello 16 octets\n"
	if _, err := io.WriteString(connection, asked); err != nil {
		return err
	}
	answer := make([]byte, len(asked))
	if _, err := io.ReadFull(connection, answer); err != nil {
		return err
	}
	fmt.Print(string(answer))
	return nil
}

func main() {
	command := map[string]func() error{"serve": serve, "ask": ask}[os.Args[1]]
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
