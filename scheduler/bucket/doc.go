// Package bucket finds a node for a volume without scanning the nodes.
package bucket
