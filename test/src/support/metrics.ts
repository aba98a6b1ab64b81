import { expect } from 'vitest';

/** The value of one of the model's metrics of a running server. */
export async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split('\n').find((candidate) => candidate.startsWith(`vllm:${name}{`));
  return Number(line?.slice(line.lastIndexOf(' ')));
}

/** Waits until nothing runs or waits and no block of the KV cache is held. */
export async function expectIdle(url: string): Promise<void> {
  for (const name of ['num_requests_running', 'num_requests_waiting', 'kv_cache_usage_perc']) {
    await expect.poll(() => metric(url, name), { message: name }).toBe(0);
  }
}
