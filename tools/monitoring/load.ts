const CLIENTS = 4;
const TEXT = 'Repeat this sentence three times: the quick brown fox jumps over the lazy dog.';

/**
 * Asks a server as several clients do at once, until `isOver` says so: streams, answers in one piece, and now and then a
 * request that is refused. Prompts share a beginning, and answers repeat their prompt, so that caches and drafts are used.
 */
export async function loadServer(url: string, model: string, isOver: () => boolean): Promise<void> {
  await Promise.all(Array.from({ length: CLIENTS }, (_, client) => askUntil({ url, model, client, isOver })));
}

interface Client {
  url: string;
  model: string;
  client: number;
  isOver: () => boolean;
}

async function askUntil({ url, model, client, isOver }: Client): Promise<void> {
  for (let turn = 0; !isOver(); turn++) {
    const isRefused = client === 0 && turn % 5 === 4;
    const body = {
      model,
      messages: [{ role: 'user', content: `${TEXT} (${client}, ${turn})` }],
      max_tokens: isRefused ? -1 : 16 + 16 * client,
      stream: client % 2 === 0,
    };
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    await response.text();
    if (response.ok === isRefused)
      throw new Error(`The server answered ${response.status} to a request of the load.`);
  }
}
