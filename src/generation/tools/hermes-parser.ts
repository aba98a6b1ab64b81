import { CallReader } from './call-reader.js';
import { CallTextParser } from './call-text-parser.js';
import { MarkerFinder } from './marker-finder.js';

export const HERMES_BEGIN = '<tool_call>';
export const HERMES_END = '</tool_call>';

/**
 * Calls as Hermes, Qwen and others write them:
 *
 *   Let me look. <tool_call>
 *   {"name": "f", "arguments": {"a": 1}}
 *   </tool_call>
 */
export class HermesParser extends CallTextParser {
  readonly #beginFinder = new MarkerFinder([HERMES_BEGIN]);
  readonly #endFinder = new MarkerFinder([HERMES_END]);
  #state: 'text' | 'call' | 'broken' | 'behind' = 'text';
  #reader = CallReader.ofAny();
  /** Text of the call, as long as it may prove to be none. */
  #raw = '';

  protected step(character: string): void {
    switch (this.#state) {
      case 'text': {
        const { text, marker } = this.#beginFinder.step(character);
        this.content(text);
        if (marker !== null) this.#open(marker);
        break;
      }
      case 'call':
        this.#inCall(character);
        break;
      case 'broken': {
        const { text, marker } = this.#endFinder.step(character);
        this.args(text);
        if (marker !== null) this.#state = 'text';
        break;
      }
      case 'behind':
        this.#behind(character);
    }
  }

  #open(marker: string): void {
    this.#state = 'call';
    this.#reader = CallReader.ofAny();
    this.#raw = marker;
  }

  #inCall(character: string): void {
    const said = this.#reader.step(character);
    if (said.state === 'invalid' && !this.#reader.isSaid) {
      this.content(this.#raw);
      this.#state = 'text';
      this.step(character);
      return;
    }
    this.#raw += character;
    this.say(said);
    if (said.state === 'done') this.#state = 'behind';
    if (said.state === 'broken') this.#state = 'broken';
    if (said.state === 'invalid') this.#state = 'behind';
    if (said.state === 'broken' || said.state === 'invalid') this.step(character);
  }

  /** Reads to the end marker. Some models put several calls between the markers, some forget the last brace. */
  #behind(character: string): void {
    if (character === '{') {
      this.#open('');
      this.step(character);
      return;
    }
    const { text, marker } = this.#endFinder.step(character);
    if (marker !== null) this.#state = 'text';
    if (text.trim() === '') return;
    this.#state = 'text';
    this.read(text + this.#endFinder.flush());
  }

  protected get undecided(): number {
    if (this.#state === 'text') return this.#beginFinder.held;
    if (this.#state === 'behind') return this.#endFinder.held;
    return this.#state === 'call' && !this.#reader.isSaid ? this.#raw.length : 0;
  }

  protected finish(): void {
    if (this.#state === 'text') this.content(this.#beginFinder.flush());
    if (this.#state === 'call' && !this.#reader.isSaid) this.content(this.#raw);
    if (this.#state === 'broken') this.args(this.#endFinder.flush());
    // A cut end marker is no text of the answer.
  }
}
