export interface StreamChunk {
  id: string;
  choices: {
    delta?: object;
    text?: string;
    finish_reason: string | null;
    stop_reason?: string | number | null;
  }[];
  usage?: { completion_tokens: number } | null;
}

/** The chunks of a stream that was read as text, without [DONE]. */
export function dataFrames(text: string): StreamChunk[] {
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: ') && !frame.endsWith('[DONE]'))
    .map((frame) => JSON.parse(frame.slice('data: '.length)) as StreamChunk);
}
