// @ts-check
// What a server is doing, a line for each event of its /stats/stream.      nothing to install
//
//     node stats.mjs http://127.0.0.1:8000 [API_KEY]
const [, , server = 'http://127.0.0.1:8000', apiKey] = process.argv;

/**
 * Server-sent events of a response, as { event, data }. (EventSource of browsers would do, but can send no key.)
 * @param {Response} response
 */
async function* events(response) {
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const frames = (text + chunk).split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const field = (/** @type {string} */ name) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(frame)?.[1];
      const data = field('data');
      if (data !== undefined) yield { event: field('event') ?? 'message', data: JSON.parse(data) };
    }
  }
}

const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
const response = await fetch(new URL('/stats/stream', server), { headers });
if (!response.ok) throw new Error(`${server} answered ${response.status}: ${await response.text()}`);

for await (const { event, data } of events(response)) {
  // The batch manager's statistics, with TensorRT-LLM's keys: at most five times a second, none while idle.
  if (event === 'stats') {
    const [active, free, max] = ['Active Request Count', 'Free KV cache blocks', 'Max KV cache blocks'].map(
      (key) => data[key],
    );
    console.log(
      `iteration ${data['Iteration Counter']}: ${active} active, ${max - free} of ${max} blocks held`,
    );
  }
  // Who is in flight, and who holds which blocks of the KV cache.
  if (event === 'formation') {
    const state = ['queued', 'context', 'generating', 'paused'];
    const rows = data.requests.map(
      (/** @type {any[]} */ row) => `${row[1]} ${state[row[2]]} (${row[7]} tokens)`,
    );
    console.log(`formation: ${rows.join(', ') || 'none'}; ${data.queued} queued`);
  }
}
