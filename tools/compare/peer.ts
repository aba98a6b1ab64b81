/** What the two sides of a comparison agree on. */

/** Tokens per second of one shape. */
export interface Rates {
  sequences: number;
  promptTokens: number;
  prefillPerSecond: number;
  generationPerSecond: number;
}

/** Every prompt first, then `generate` tokens for all sequences together; one measurement per entry of `sequences`. */
export interface PeerShape {
  sequences: number[];
  promptTokens: number;
  generate: number;
  threads: number;
}

/** An engine that Skein is measured beside. It lies outside this repository. */
export interface Peer {
  readonly name: 'llama.cpp' | 'openvino';
  /** Version, and how it was built. */
  version(): string;
  /** `weights`: one of the formats that the peer's file lists. */
  measure(model: string, weights: string, shape: PeerShape): Rates[];
}
