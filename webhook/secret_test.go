package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

// The example of the specification's libraries.
func TestSignatureIsThatOfSpecification(t *testing.T) {
	t.Parallel()
	s, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.NoError(t, err)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		sign([]Secret{s}, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, []byte(`{"test": 2432232314}`)))
}

func TestVerify(t *testing.T) {
	t.Parallel()
	body := []byte("body")
	header := func(at time.Time, secrets ...Secret) http.Header {
		return http.Header{
			"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {sign(secrets, "msg_1", at.Unix(), body)},
		}
	}
	now, other := time.Now(), NewSecret()
	require.NoError(t, Verify(header(now, secret), body, secret))
	require.NoError(t, Verify(header(now, other, secret), body, secret), "two signatures")
	require.NoError(t, Verify(header(now, secret), body, other, secret), "two secrets")
	require.NoError(t, Verify(header(now.Add(-4*time.Minute), secret), body, secret))
	for _, h := range []http.Header{
		{}, header(now, other), header(now), header(now.Add(-6*time.Minute), secret), header(now.Add(6*time.Minute), secret),
	} {
		require.ErrorIs(t, Verify(h, body, secret), ErrSignature)
	}
	for name, value := range map[string]string{"Webhook-Id": "msg_2", "Webhook-Timestamp": "1", "Webhook-Signature": "v1a," + header(now, secret).Get("Webhook-Signature")[3:]} {
		h := header(now, secret)
		h.Set(name, value)
		require.ErrorIs(t, Verify(h, body, secret), ErrSignature, name)
	}
	require.ErrorIs(t, Verify(header(now, secret), []byte("Body"), secret), ErrSignature)
	require.ErrorIs(t, Verify(header(now, Secret{}), body, Secret{}), ErrSignature, "an empty secret verifies nothing")
	require.ErrorIs(t, Verify(header(now, secret), body), ErrSignature)
}

func TestParseSecret(t *testing.T) {
	t.Parallel()
	again, err := ParseSecret(secret.Reveal())
	require.NoError(t, err)
	require.Equal(t, secret.key, again.key)
	_, err = ParseSecret(strings.TrimPrefix(secret.Reveal(), "whsec_"))
	require.NoError(t, err)
	for _, wrong := range []string{
		"", "whsec_", "whsec_short", "whsec_" + strings.Repeat("A", 31), "whsec_" + strings.Repeat("A", 88), "whsec_" + strings.Repeat("!", 32),
		"whsec_" + strings.Repeat("A", 16) + "\n" + strings.Repeat("A", 16), "whsk_" + strings.Repeat("A", 32),
	} {
		_, err := ParseSecret(wrong)
		require.ErrorIs(t, err, wakebell.ErrInvalid, wrong)
		require.NotContains(t, err.Error(), "AAAA")
	}
}

func FuzzParseSecrets(f *testing.F) {
	for _, s := range []string{"", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "# old\nwhsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\r\nMfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", "whsec_\n", "whsec_AAAA=", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content string) {
		secrets, err := parseSecrets(content)
		if err != nil {
			require.Empty(t, secrets)
			return
		}
		require.True(t, len(secrets) == 1 || len(secrets) == 2)
		for _, s := range secrets {
			again, err := ParseSecret(s.Reveal())
			require.NoError(t, err)
			require.Equal(t, s.key, again.key)
		}
	})
}

func TestSecretIsNotShown(t *testing.T) {
	t.Parallel()
	encoded := base64.StdEncoding.EncodeToString(secret.key)
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "secret", secret, "config", Config{Secrets: []Secret{secret}})
	}
	marshalled, err := json.Marshal(secret)
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&log, verb+verb, secret, []Secret{secret})
	}
	log.Write(marshalled)
	require.NotContains(t, log.String(), encoded)
	require.NotContains(t, log.String(), fmt.Sprintf("%d", secret.key))
	require.NotContains(t, log.String(), fmt.Sprintf("%x", secret.key))
	require.Contains(t, log.String(), "whsec_…")
}

func TestSecretsAreReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "secret")
		written := time.Now()
		write := func(lines ...string) {
			require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600))
			written = written.Add(time.Second) // the clock of the file system may be coarse
			require.NoError(t, os.Chtimes(name, written, written))
		}
		old, next := NewSecret(), NewSecret()
		var log bytes.Buffer
		write(old.Reveal())
		f, err := openSecretFile(name, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		after := func() (keys []string) {
			<-time.After(checkEvery)
			for _, s := range f.current(time.Now()) {
				keys = append(keys, s.Reveal())
			}
			return keys
		}
		require.Equal(t, []string{old.Reveal()}, after())
		write("# while receivers change", next.Reveal(), old.Reveal(), "")
		require.Equal(t, []string{next.Reveal(), old.Reveal()}, after())
		for _, wrong := range []string{"", "whsec_", old.Reveal() + "\n" + old.Reveal() + "\n" + old.Reveal(), strings.Repeat("#", secretFileLimit+1)} {
			write(wrong)
			require.Len(t, after(), 2, "the previous ones stay")
		}
		require.NoError(t, os.Remove(name))
		require.Len(t, after(), 2)
		write(next.Reveal())
		require.Equal(t, []string{next.Reveal()}, after())
		require.Equal(t, 5, strings.Count(log.String(), "cannot be used"), "each once:\n%s", log.String())
		require.Equal(t, 2, strings.Count(log.String(), "read again"))
		for _, s := range []Secret{old, next} {
			require.NotContains(t, log.String(), strings.TrimPrefix(s.Reveal(), "whsec_"))
		}
	})
}

func TestSecretFileMustBeUsableAtFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := Config{URL: "https://example.com", SecretFile: filepath.Join(dir, "none")}
	require.NoError(t, cfg.Validate(), "it reads no file")
	_, err := New(cfg)
	require.ErrorIs(t, err, os.ErrNotExist)
	cfg.SecretFile = filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(cfg.SecretFile, 0o600))
	_, err = New(cfg)
	require.ErrorContains(t, err, "not a regular file")
	var log bytes.Buffer
	cfg.SecretFile, cfg.Logger = filepath.Join(dir, "open"), slog.New(slog.NewTextHandler(&log, nil))
	require.NoError(t, os.WriteFile(cfg.SecretFile, []byte(secret.Reveal()), 0o600))
	require.NoError(t, os.Chmod(cfg.SecretFile, 0o644)) // this causes a warning
	_, err = New(cfg)
	require.NoError(t, err)
	require.Contains(t, log.String(), "other users than the owner")
}

func TestRequestHasSignatureOfEachSecret(t *testing.T) {
	t.Parallel()
	var got received
	other := NewSecret()
	w := endpoint(t, Config{Secrets: []Secret{other, secret}}, func(_ http.ResponseWriter, r received) { got = r })
	require.NoError(t, w.Handle(t.Context(), bill(t, "x")))
	require.Len(t, strings.Fields(got.Header.Get("Webhook-Signature")), 2)
	require.NoError(t, Verify(got.Header, got.body, other))
}
