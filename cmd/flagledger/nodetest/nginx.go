package nodetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"flagledger/commands/tooltest"
)

// Nginx starts a real nginx and returns its URL. server holds the directives of its server block, outside directives
// beside it, such as an upstream. The test is skipped if nginx is not installed.
func Nginx(t testing.TB, server string, outside ...string) (url string) {
	t.Helper()
	binary := tooltest.Find(t, "nginx")
	dir, address := t.TempDir(), FreeAddress(t)
	user := ""
	if os.Geteuid() == 0 { // another user may not enter the test's folder
		user = "user root;"
	}
	config := fmt.Sprintf(`
daemon off;
%s
worker_processes 1;
error_log stderr warn;
pid %[2]s/nginx.pid;
events { worker_connections 4096; }
http {
	access_log off;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	%[3]s
	server {
		listen %[4]s;
		%[5]s
	}
}
`, user, dir, strings.Join(outside, "\n"), address, server)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	output := &Output{}
	nginx := exec.Command(binary, "-e", "stderr", "-c", file)
	nginx.Stdout, nginx.Stderr = output, output
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = nginx.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = nginx.Process.Signal(syscall.SIGTERM) // if killed, it would leave its workers behind
		<-exited
		if t.Failed() {
			t.Logf("nginx printed:\n%s", tail(output.String(), 40))
		}
	})
	(&Service{T: t, URL: "http://" + address}).Eventually("nginx listens", func() bool {
		select {
		case <-exited:
			t.Fatalf("nginx ended: %v\n%s", nginx.ProcessState, output)
		default:
		}
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
	return "http://" + address
}
