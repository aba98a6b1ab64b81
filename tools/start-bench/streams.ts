/** Runs this many streamed completions at once; returns the tokens that came. */
export async function streamAll(url: string, count: number): Promise<number> {
  const counts = await Promise.all(Array.from({ length: count }, (_, i) => stream(url, i)));
  return counts.reduce((sum, tokens) => sum + tokens, 0);
}

const MAX_TOKENS = 64;

async function stream(url: string, index: number): Promise<number> {
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      prompt: `${index}. Once upon a time, in a land of ${index} lakes, there was `.repeat(8),
      max_tokens: MAX_TOKENS,
      ignore_eos: true,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`Stream ${index} failed with ${response.status}: ${text}`);
  const usage = /"completion_tokens":(\d+)/.exec(text)?.[1];
  if (usage === undefined || !text.includes('[DONE]'))
    throw new Error(`Stream ${index} was cut off: ${text.slice(-300)}`);
  return Number(usage);
}
