import { el } from '../../dom.js';
import type { ApprovalRequest, CallItem, ToolCall } from './tool-call.js';

/** Characters of arguments and results that are shown. */
const MAX_SHOWN = 20_000;

interface Shown {
  call: ToolCall;
  element: HTMLElement;
}

/** The calls of tools in an answer. One that waits for the reader has two buttons. */
export class CallsView {
  readonly element = el('ul', { class: 'calls', 'aria-label': 'Calls of tools', hidden: true });
  readonly #shown: Shown[] = [];
  /** By the ids of what was asked of the reader. */
  readonly #asked = new Map<string, Shown>();

  /** What is kept of them. */
  get calls(): ToolCall[] {
    return this.#shown.map(({ call }) => call);
  }

  restore(calls: readonly ToolCall[]): void {
    for (const call of calls) this.#add(call, stateOf(call));
  }

  /** Asks whether a call may run. @throws the reason of the signal */
  approve(
    { id, server_label: server, name, arguments: args }: ApprovalRequest,
    signal: AbortSignal,
  ): Promise<boolean> {
    const call: ToolCall = {
      ...{ server, name, arguments: args, output: null, error: null },
      isDenied: false,
    };
    const shown = this.#add(call, 'asks to run');
    this.#asked.set(id, shown);
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#show(shown, 'not run');
        reject(signal.reason);
      };
      if (signal.aborted) return stop();
      signal.addEventListener('abort', stop);
      const decide = (isApproved: boolean) => {
        signal.removeEventListener('abort', stop);
        call.isDenied = !isApproved;
        this.#show(shown, isApproved ? 'running' : 'denied');
        resolve(isApproved);
      };
      const button = (text: string, kind: string, isApproved: boolean) =>
        el(
          'button',
          { class: `button ${kind}`, type: 'button', 'aria-label': `${text} ${name} of ${server}` },
          [text],
          {
            click: () => decide(isApproved),
          },
        );
      const buttons = [button('Approve', 'primary', true), button('Deny', '', false)];
      shown.element.append(el('div', { class: 'call-row' }, buttons));
    });
  }

  /** Shows what a call gave. */
  end({
    server_label: server,
    name,
    arguments: args,
    approval_request_id: id,
    output,
    error,
  }: CallItem): void {
    const ended = { output: output ?? null, error: error ?? null };
    const shown = this.#asked.get(id ?? '');
    if (shown === undefined) {
      const call = { ...{ server, name, arguments: args }, ...ended, isDenied: false };
      this.#add(call, stateOf(call));
    } else {
      Object.assign(shown.call, ended);
      this.#show(shown, stateOf(shown.call));
    }
  }

  #add(call: ToolCall, state: string): Shown {
    const shown = { call, element: el('li', { class: 'call' }) };
    this.#shown.push(shown);
    this.#show(shown, state);
    this.element.append(shown.element);
    this.element.hidden = false;
    return shown;
  }

  #show({ call, element }: Shown, state: string): void {
    const { server, name, arguments: args, output, error } = call;
    const hadFocus = element.contains(document.activeElement);
    const words = el('span', {}, [el('strong', {}, [name]), ` of ${server}`]);
    const head = el('div', { class: 'call-head' }, [words, el('span', { class: 'call-state' }, [state])]);
    const parts = [block('Arguments', args), block('Result', output), block('Error', error)];
    element.replaceChildren(head, ...parts.filter((part) => part !== null));
    if (!hadFocus) return;
    // Its buttons are gone.
    element.tabIndex = -1;
    element.focus();
  }
}

function stateOf({ isDenied, output, error }: ToolCall): string {
  if (isDenied) return 'denied';
  if (error !== null) return 'failed';
  return output === null ? 'not run' : 'done';
}

/** A text of a call, folded where it is long; null: there is none. */
function block(name: string, text: string | null): HTMLElement | null {
  if (text === null || text === '') return null;
  const shown = text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
  return el('details', { open: name === 'Arguments' }, [
    el('summary', {}, [name]),
    el('pre', { tabindex: '0', role: 'group', 'aria-label': name }, [shown]),
  ]);
}
