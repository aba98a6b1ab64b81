import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { measureStarts } from '../../../../tools/compare/shape/starts.js';
import { freshFolders } from '../../../support/fresh-folders.js';

const freshFolder = freshFolders('starts');

/**
 * A server that is ill at first, keeps a file of 1000 bytes for each start, and answers as it is asked to.
 */
const SERVER = `
const { createServer } = require('node:http');
const { writeFileSync } = require('node:fs');
const [port, folder, status] = process.argv.slice(1);
writeFileSync(folder + '/inner/' + port, Buffer.alloc(1000));
let asked = 0;
createServer((request, response) => {
  const isWell = request.url !== '/health' || asked++ > 0;
  response.statusCode = request.url === '/v1/completions' ? Number(status) : isWell ? 200 : 503;
  response.end(JSON.stringify({ data: [{ id: 'm' }] }));
}).listen(Number(port), '127.0.0.1');`;

function server(status = 200) {
  const folder = freshFolder();
  const file = join(folder, 'model.gguf');
  mkdirSync(join(folder, 'kept', 'inner'), { recursive: true });
  writeFileSync(file, Buffer.alloc(100_000));
  const kept = join(folder, 'kept');
  const start = (port: number) =>
    spawn(process.execPath, ['-e', SERVER, `${port}`, kept, `${status}`], { stdio: 'ignore' });
  return { file, kept, start };
}

describe('measureStarts', () => {
  it('starts twice, until the first answer, and tells what is kept then', async () => {
    const values = await measureStarts(server());
    expect(values.keptMb).toBe(0.002);
    for (const name of ['readSeconds', 'firstStartSeconds', 'laterStartSeconds'])
      expect(values[name]).toBeGreaterThan(0);
    if (process.platform === 'linux') {
      expect(values.ownMb).toBeGreaterThan(1);
      expect(values.residentMb).toBeGreaterThan(values.ownMb!);
    }
  });

  it('names the answer of a server that gives none, and the end of one that ends', async () => {
    await expect(measureStarts(server(500))).rejects.toThrow('/v1/completions answers 500');
    const ends = { ...server(), start: () => spawn(process.execPath, ['-e', 'process.exit(3)']) };
    await expect(measureStarts(ends)).rejects.toThrow('ended with 3');
  });
});
