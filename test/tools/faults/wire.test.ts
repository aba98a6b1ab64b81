import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Wire } from '../../../tools/faults/fleet/wire.js';

/** A server that says back what it receives, and remembers it. */
class Echo {
  readonly server = createServer({ allowHalfOpen: true }, (socket) => {
    this.sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      this.heard += bytes.toString();
      socket.write(bytes);
    });
    socket.on('end', () => socket.end());
  });
  readonly sockets: Socket[] = [];
  heard = '';

  async listen(): Promise<number> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return (this.server.address() as { port: number }).port;
  }
}

describe('a wire', () => {
  let echo: Echo;
  let wire: Wire;
  let clients: Socket[];

  beforeEach(async () => {
    echo = new Echo();
    clients = [];
    wire = await Wire.open([await echo.listen()]);
  });
  afterEach(() => {
    wire.close();
    echo.server.close();
    for (const socket of [...clients, ...echo.sockets]) socket.destroy();
  });

  const open = async () => {
    const socket = connect(wire.ports[0]!, '127.0.0.1');
    clients.push(socket);
    let said = '';
    socket.on('error', () => {});
    socket.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    await once(socket, 'connect');
    return { socket, said: () => said };
  };
  const poll = (value: () => unknown) => expect.poll(value, { timeout: 20_000, interval: 2 });

  it('carries bytes, counts them, and ends as its ends do', async () => {
    const { socket, said } = await open();
    socket.end('hello');
    await once(socket, 'close');
    expect(said()).toBe('hello');
    expect(wire.bytes).toEqual({ up: 5, down: 5 });
  });

  it('holds what is said in one direction, and lets it go on in order', async () => {
    const { socket, said } = await open();
    socket.write('a');
    await poll(said).toBe('a');
    wire.hold(['down']);
    socket.write('b');
    await poll(() => echo.heard).toBe('ab');
    await poll(() => wire.keptBytes).toBe(1);
    expect(said()).toBe('a');
    wire.hold(['up']);
    socket.write('c');
    await poll(() => wire.keptBytes).toBe(2);
    expect(echo.heard).toBe('ab');
    wire.release();
    await poll(said).toBe('abc');
  });

  it('tells no end of a connection that it holds', async () => {
    const { socket } = await open();
    socket.write('a');
    await poll(() => echo.heard).toBe('a');
    wire.hold();
    let hasClosed = false;
    echo.sockets[0]!.on('close', () => {
      hasClosed = true;
    });
    socket.destroy();
    // A second connection is taken meanwhile, and nothing comes of it: by then the end of the first one has come to the wire.
    const second = await open();
    second.socket.write('z');
    await poll(() => wire.keptBytes).toBe(1);
    expect([hasClosed, echo.heard]).toEqual([false, 'a']);
    wire.release();
    await poll(() => hasClosed).toBe(true);
    await poll(second.said).toBe('z');
  });

  it('keeps no more than it must of what it holds', async () => {
    const { socket, said } = await open();
    wire.hold(['up']);
    const bytes = Buffer.alloc(24 << 20, 'x');
    socket.write(bytes);
    await poll(() => wire.keptBytes).toBeGreaterThan(1 << 20);
    expect(wire.keptBytes).toBeLessThan(2 << 20);
    expect(socket.writableLength).toBeGreaterThan(0);
    wire.release();
    await poll(() => said().length).toBe(bytes.length);
  });

  it('slows what comes, and loses nothing of it', async () => {
    const { socket, said } = await open();
    wire.slow(30);
    for (const text of ['a', 'b', 'c']) socket.write(text);
    await poll(() => wire.keptBytes).toBeGreaterThan(0);
    await poll(said).toBe('abc');
  });

  it('cuts all connections and takes no others, until it is released', async () => {
    const { socket } = await open();
    wire.cut();
    await once(socket, 'close');
    const refused = connect(wire.ports[0]!, '127.0.0.1').on('error', () => {});
    clients.push(refused);
    await once(refused, 'close');
    wire.release();
    const { socket: other, said } = await open();
    other.write('a');
    await poll(said).toBe('a');
  });
});
