package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/warmlane/warmlane/examples/internal/envoy"
)

// share is how many requests a replica got.
type share struct {
	address  string
	requests int64
}

// requestsByReplica asks Envoy how many requests each replica has got, in the order of addresses.
func requestsByReplica(ctx context.Context, admin envoy.AdminAPI, addresses []string) ([]share, error) {
	page, err := admin.Get(ctx, "/clusters?format=json")
	if err != nil {
		return nil, err
	}
	counts, err := parseClusters(page)
	if err != nil {
		return nil, fmt.Errorf("admin /clusters: %w", err)
	}
	shares := make([]share, len(addresses))
	for i, address := range addresses {
		shares[i] = share{address, counts[address]}
	}
	return shares, nil
}

func sharesSince(ctx context.Context, admin envoy.AdminAPI, addresses []string, before []share) ([]share, error) {
	now, err := requestsByReplica(ctx, admin, addresses)
	for i := range now {
		now[i].requests -= before[i].requests
	}
	return now, err
}

// parseClusters reads the counter rq_total of every host from Envoy's /clusters?format=json. Numbers there are strings, as
// protobuf's JSON has it for 64 bits.
func parseClusters(page []byte) (map[string]int64, error) {
	var doc struct {
		Clusters []struct {
			Hosts []struct {
				Address struct {
					Socket struct {
						Host string `json:"address"`
						Port int    `json:"port_value"`
					} `json:"socket_address"`
				} `json:"address"`
				Stats []struct {
					Name  string `json:"name"`
					Value int64  `json:"value,string"`
				} `json:"stats"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.Unmarshal(page, &doc); err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for _, cluster := range doc.Clusters {
		for _, host := range cluster.Hosts {
			for _, stat := range host.Stats {
				if stat.Name == "rq_total" {
					s := host.Address.Socket
					counts[fmt.Sprintf("%s:%d", s.Host, s.Port)] = stat.Value
				}
			}
		}
	}
	return counts, nil
}
