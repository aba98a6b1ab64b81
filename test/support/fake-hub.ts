import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface HubFile {
  content: Buffer;
  /** Stored as a large file: named by its sha256, and sent from another address. */
  isLarge: boolean;
}

/** A fault in sending a file; it happens once. */
export interface Trouble {
  path: string;
  /** Ends the connection after this many bytes of the answer. */
  cutAfter?: number;
  /** Answers with this. */
  status?: number;
  retryAfter?: string;
  /** Sends this in place of the content. */
  content?: Buffer;
  /** Sends nothing more after the headers, or after this many bytes. */
  stalls?: boolean | number;
}

const sha1 = (content: Buffer) => createHash('sha1').update(content).digest('hex');
const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');

/** Speaks as much of the Hugging Face hub's API as a download needs: a repository with one commit, ranges, redirects, tokens. */
export class FakeHub {
  readonly id: string;
  readonly files: ReadonlyMap<string, HubFile>;
  readonly commit: string;
  /** Needed to see the repository. */
  token: string | null = null;
  /** Answers every question with it. */
  status: number | null = null;
  knowsRanges = true;
  readonly troubles: Trouble[] = [];
  /** Files that were asked for: path, first byte, and authorization of each. */
  readonly sent: { path: string; start: number; authorization: string | undefined }[] = [];
  /** Bytes of each file that were asked for. */
  readonly bytesSent = new Map<string, number>();
  questions = 0;
  readonly #server: Server;

  private constructor(id: string, files: ReadonlyMap<string, HubFile>) {
    this.id = id;
    this.files = files;
    this.commit = sha1(Buffer.from([...files].map(([path, { content }]) => path + sha1(content)).join()));
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(id: string, files: ReadonlyMap<string, HubFile>): Promise<FakeHub> {
    const hub = new FakeHub(id, files);
    await new Promise<void>((resolve) => hub.#server.listen(0, '127.0.0.1', resolve));
    return hub;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(request.url!, this.endpoint);
    const path = decodeURIComponent(pathname);
    // Another address than the hub's own, whose files come by links that need no token.
    if (path.startsWith('/cdn/')) {
      this.#send(path.slice('/cdn/'.length), request, response);
      return;
    }
    const json = (status: number, body: unknown, headers = {}) =>
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(JSON.stringify(body));
    if (!path.includes('/resolve/')) this.questions++;
    if (this.status !== null) return void json(this.status, { error: 'no' });
    if (this.token !== null && request.headers.authorization !== `Bearer ${this.token}`)
      return void json(401, { error: 'Invalid username or password.' });
    const revisions = ['main', 'v1', this.commit];
    const [, what, revision] =
      new RegExp(`^/api/models/${this.id}/(revision|tree)/([^/]+)$`).exec(path) ?? [];
    if (revision !== undefined && revisions.includes(revision)) {
      return void json(200, what === 'tree' ? this.#tree() : { _id: '1', id: this.id, sha: this.commit });
    }
    const file = new RegExp(`^/${this.id}/resolve/${this.commit}/(.+)$`).exec(path)?.[1];
    if (file === undefined || !this.files.has(file)) return void json(404, { error: 'Repository not found' });
    if (this.files.get(file)!.isLarge)
      response.writeHead(302, { location: `/cdn/${encodeURIComponent(file)}` }).end();
    else this.#send(file, request, response);
  }

  #tree() {
    const folders = new Set(
      [...this.files.keys()].filter((path) => path.includes('/')).map((path) => path.split('/')[0]),
    );
    const entries = [...this.files].map(([path, { content, isLarge }]) => ({
      type: 'file',
      path,
      size: content.length,
      oid: isLarge
        ? sha1(Buffer.from(`pointer to ${path}`))
        : sha1(Buffer.concat([Buffer.from(`blob ${content.length}\0`), content])),
      ...(isLarge ? { lfs: { oid: sha256(content), size: content.length, pointerSize: 130 } } : {}),
    }));
    return [...[...folders].map((path) => ({ type: 'directory', path, size: 0, oid: '0' })), ...entries];
  }

  #send(path: string, { headers }: IncomingMessage, response: ServerResponse): void {
    const { content } = this.files.get(path)!;
    const [, first = '0', last = ''] =
      (this.knowsRanges ? /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') : null) ?? [];
    const start = Number(first);
    const end = last === '' ? undefined : Number(last) + 1;
    this.sent.push({ path, start, authorization: headers.authorization });
    const index = this.troubles.findIndex((trouble) => trouble.path === path);
    const trouble = index < 0 ? undefined : this.troubles.splice(index, 1)[0];
    if (trouble?.status !== undefined) {
      return void response
        .writeHead(trouble.status, trouble.retryAfter ? { 'retry-after': trouble.retryAfter } : {})
        .end();
    }
    const body = (trouble?.content ?? content).subarray(start, end);
    const isPart = start > 0 || last !== '';
    const range = isPart
      ? { 'content-range': `bytes ${start}-${start + body.length - 1}/${content.length}` }
      : {};
    this.bytesSent.set(path, (this.bytesSent.get(path) ?? 0) + body.length);
    response.writeHead(isPart ? 206 : 200, { 'content-length': body.length, ...range });
    if (typeof trouble?.stalls === 'number') return void response.write(body.subarray(0, trouble.stalls));
    if (trouble?.stalls) return void response.flushHeaders();
    if (trouble?.cutAfter === undefined) return void response.end(body);
    response.write(body.subarray(0, trouble.cutAfter), () => response.destroy());
  }
}

/** The files of a folder, and of folders in it, as those of a repository; weights are large files. */
export function filesOf(folder: string): Map<string, HubFile> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return new Map(
    names
      .filter((name) => statSync(join(folder, name)).isFile())
      .map((name) => [
        name,
        { content: readFileSync(join(folder, name)), isLarge: /\.(safetensors|gguf)$/.test(name) },
      ]),
  );
}
