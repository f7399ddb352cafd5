// Package examples checks the files in examples/ and .github/ by the schemas of the programs that read
// them. It is a module of its own, because these schemas take long to compile.
package examples
