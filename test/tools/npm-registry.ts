import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';

/** A package as it would be published. */
export interface PublishedPackage {
  manifest: { name: string; version: string };
  tarball: string;
}

/** A registry of npm with these packages alone, on this machine. Any other package is not found. */
export async function startRegistry(
  packages: readonly PublishedPackage[],
): Promise<{ url: string; close(): void }> {
  const server: Server = createServer((request, response) => {
    const path = decodeURIComponent(request.url!.slice(1));
    const file = packages.find(({ tarball }) => path === `-/${basename(tarball)}`);
    if (file !== undefined) {
      response.end(readFileSync(file.tarball));
      return;
    }
    const found = packages.find(({ manifest }) => manifest.name === path);
    if (found === undefined) {
      response.writeHead(404).end('{}');
      return;
    }
    const { manifest, tarball } = found;
    const { name, version } = manifest;
    const dist = { tarball: `${url}/-/${basename(tarball)}` };
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        name,
        'dist-tags': { latest: version },
        versions: { [version]: { ...manifest, dist } },
      }),
    );
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, close: () => server.close() };
}
