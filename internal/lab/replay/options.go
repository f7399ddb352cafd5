package replay

import "io"

// Options say what to replay.
type Options struct {
	Logs  []string  // names of files; "-" for Input
	Input io.Reader // the standard input

	Format    string   // of the logs; "" or "auto" to find out
	LogFormat []string // texts of nginx's log_format

	Tries []Try // other limits

	// Suggest looks for a limit for each zone, and Curve also tries limits from the smallest to the largest
	// peak of a client. Both read the logs twice.
	Suggest, Curve bool
}

// Try is a limit to try instead of that of a zone.
type Try struct {
	Zone string
	Rate string // "60/1m", or "10" for a limit without a window
}
