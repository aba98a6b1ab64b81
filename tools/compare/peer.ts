import type { ChildProcess } from 'node:child_process';
import { statSync } from 'node:fs';
import type { Shape } from './shapes.js';
import type { Candidate } from './side.js';

/** Tokens per second of one shape. */
export type Rates = {
  prefillPerSecond: number;
  generationPerSecond: number;
};

/** An engine that Skein is compared with. It lies outside this repository. */
export interface Peer {
  /** Version, and how it was built. */
  version(): string;
  /** Path of the file with the weights of `model` (a GGUF) in one of the formats that the peer's file lists; made once. */
  weightsFile(model: string, format: string): string;
  measure(model: string, format: string, shape: Shape, threads: number): Rates;
}

/** A peer with a server that has an OpenAI-compatible API and GET /health. */
export interface ServingPeer extends Peer {
  /** Starts the server with a slot of `slotTokens` tokens for each of `slots` clients. */
  serve(
    model: string,
    format: string,
    port: number,
    threads: number,
    slots: number,
    slotTokens: number,
  ): ChildProcess;
}

/** The formats of a peer as sides of a comparison. The peer itself is found or built when the first one is opened. */
export function peerSides(
  engine: string,
  formats: readonly string[],
  openPeer: () => Peer,
  { model, threads, measures }: { model: string; threads: number; measures: (shape: Shape) => boolean },
): Candidate<Shape>[] {
  let peer: Peer | undefined;
  return formats.map((format) => ({
    engine,
    format,
    open: () => {
      peer ??= openPeer();
      const opened = peer;
      return {
        name: `${engine} ${format}`,
        engine,
        format,
        bytes: statSync(opened.weightsFile(model, format)).size,
        version: opened.version(),
        measures,
        measure: (shape) => opened.measure(model, format, shape, threads),
      };
    },
  }));
}
