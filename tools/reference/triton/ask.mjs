import { request } from 'node:http';

/**
 * Asks one of typed-cases.mjs. The body of the answer is latin1, a character a byte; `jsonLength` is there
 * where tensors follow the JSON.
 * @param {string} url @param {{ path: string, body: Buffer, headers: Record<string, string> }} asked
 * @returns {Promise<{ status: number, jsonLength?: number, body: string }>}
 */
export function ask(url, { path, body, headers }) {
  return new Promise((resolve, reject) => {
    // fetch would refuse an empty header, and add one of its own.
    const sent = request(url + path, {
      method: 'POST',
      headers: { ...headers, 'Content-Length': body.length },
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const length = response.headers['inference-header-content-length'];
        resolve({
          status: response.statusCode,
          ...(length === undefined ? {} : { jsonLength: Number(length) }),
          body: Buffer.concat(parts).toString('latin1'),
        });
      });
    });
    sent.end(body);
  });
}
