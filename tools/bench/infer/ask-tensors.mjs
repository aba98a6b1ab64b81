// Clients of one server of the Open Inference Protocol, in a process of their own: node ask-tensors.mjs
// '{"url", "model", "clients", "floats", "seconds", "isBinary", "length"}' prints {"perSecond", "p50",
// "p99"}. Each client asks again as soon as it has its answer. With a length above 0 it sends sequences of
// that many requests, one after the other, and sequences are what is counted and timed. A url that begins
// with grpc:// is asked over gRPC.
import http from 'node:http';

const { url, model, clients, floats, seconds, isBinary, length } = JSON.parse(process.argv[2]);
const input = { name: 'INPUT0', shape: [1, floats], datatype: 'FP32' };
const tensor = isBinary
  ? { ...input, parameters: { binary_data_size: 4 * floats } }
  : { ...input, data: Array.from({ length: floats }, (_, i) => i + 0.5) };
const raw = isBinary ? Buffer.from(new Float32Array(floats).fill(1.5).buffer) : Buffer.alloc(0);

/** @param parameters of the request, besides those of its form */
function bodyOf(parameters) {
  const all = { ...(isBinary && { binary_data_output: true }), ...parameters };
  const json = JSON.stringify({
    inputs: [tensor],
    ...(Object.keys(all).length > 0 && { parameters: all }),
  });
  return {
    body: Buffer.concat([Buffer.from(json), raw]),
    headers: isBinary ? { 'Inference-Header-Content-Length': json.length } : {},
  };
}
const agent = new http.Agent({ keepAlive: true, maxSockets: clients });
const over = url.startsWith('grpc://')
  ? (await import('./ask-grpc.mjs')).grpcAsker({ url, model, clients, floats })
  : { bodyOf, ask };

function ask({ body, headers }) {
  return new Promise((resolve, reject) => {
    const request = http.request(
      `${url}/v2/models/${model}/infer`,
      { agent, method: 'POST', headers: { ...headers, 'content-length': body.length } },
      (response) => {
        response.resume();
        response.on('end', () => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(`${url} answered ${response.statusCode}.`));
        });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

const took = [];
const startMs = performance.now();
const untilMs = startMs + 1000 * seconds;
const single = over.bodyOf({});
let numSequences = 0;
async function askSequence(index) {
  const sequence_id = ++numSequences;
  for (let i = 0; i < length; i++)
    await over.ask(
      over.bodyOf({ sequence_id, sequence_start: i === 0, sequence_end: i === length - 1 }),
      index,
    );
}
const client = async (_, index) => {
  while (performance.now() < untilMs) {
    const sentMs = performance.now();
    await (length > 0 ? askSequence(index) : over.ask(single, index));
    took.push(performance.now() - sentMs);
  }
};
await Promise.all(Array.from({ length: clients }, client));
const perSecond = (1000 * took.length) / (performance.now() - startMs);
took.sort((a, b) => a - b);
const at = (share) => took[Math.floor(share * (took.length - 1))];
console.log(JSON.stringify({ perSecond, p50: at(0.5), p99: at(0.99) }));
process.exit(0);
