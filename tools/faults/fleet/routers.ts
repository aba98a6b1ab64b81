/** A router of another project that is put in front of servers. */
export interface Router {
  name: string;
  /** Its program, as pip installs it. */
  program: string;
  /** @param workers addresses of the servers */
  args: (ports: { own: number; metrics: number }, workers: readonly string[]) => string[];
}

const common = ({ own, metrics }: { own: number; metrics: number }, workers: readonly string[]) => [
  ...['--host', '127.0.0.1', '--port', String(own), '--prometheus-port', String(metrics)],
  ...['--worker-urls', ...workers],
  // By default a server is looked at once a minute, and one that has failed is left alone for as long.
  ...['--health-check-interval-secs', '1', '--health-check-timeout-secs', '2'],
  ...['--cb-timeout-duration-secs', '2', '--retry-max-backoff-ms', '1000'],
];

/** Those that pip has. */
export const ROUTERS: readonly Router[] = [
  {
    name: 'vllm-router',
    program: 'vllm-router',
    args: (ports, workers) => ['--policy', 'round_robin', ...common(ports, workers)],
  },
  {
    name: 'sglang-router',
    program: 'sglang-router',
    args: (ports, workers) => [
      ...['launch', '--policy', 'cache_aware', '--worker-startup-check-interval', '1'],
      ...common(ports, workers),
    ],
  },
];
