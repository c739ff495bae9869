package deponent.engine;

import java.util.List;
import java.util.Map;

/**
 * What a server can do.
 *
 * @param forks the forks whose containers it knows; empty over JSON-RPC, which does not say
 * @param endpoints methods of JSON-RPC, or endpoints behind {@code /engine/v1/}
 * @param limits bounds of a request by their names; empty over JSON-RPC
 */
public record Capabilities(List<String> forks, List<String> endpoints, Map<String, Long> limits) {
  /** Copies the lists. */
  public Capabilities {
    forks = List.copyOf(forks);
    endpoints = List.copyOf(endpoints);
    limits = Map.copyOf(limits);
  }
}
