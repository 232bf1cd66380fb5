// Keeps the requests of the page in the frame inside this tab: `fetch` and XMLHttpRequest ask the app around the frame.
import type { App } from './app.js';

/** How long the upload of a file is shown, and in how many steps. No network paces it here. */
const UPLOAD_MS = 800;
const UPLOAD_STEPS = 16;

/** Replaces `fetch` and XMLHttpRequest of this window. */
export function stayInTab(app: App): void {
  const asked = (url: string | URL | Request) => new URL(url instanceof Request ? url.url : url, location.href).href;
  window.fetch = (url, init) => app.fetch(asked(url), init);
  window.XMLHttpRequest = class extends TabRequest {
    protected answer(init: RequestInit): Promise<Response> {
      return app.fetch(asked(this.url), init);
    }
  } as unknown as typeof XMLHttpRequest;
}

/** XMLHttpRequest as far as `gen-client/page` uses it. */
abstract class TabRequest {
  readonly upload: { onprogress?: (event: { readonly loaded: number }) => void } = {};
  onloadend?: () => void;
  status = 0;
  response: unknown = null;
  responseType = '';
  withCredentials = false;
  protected url = '';
  readonly #headers = new Headers();
  #method = 'GET';
  #isAborted = false;

  open(method: string, url: string): void {
    [this.#method, this.url] = [method, url];
  }

  setRequestHeader(name: string, value: string): void {
    this.#headers.set(name, value);
  }

  abort(): void {
    this.#isAborted = true;
    this.onloadend?.();
  }

  async send(file: Blob): Promise<void> {
    for (let step = 1; step <= UPLOAD_STEPS && !this.#isAborted; step++) {
      await new Promise((resolve) => setTimeout(resolve, UPLOAD_MS / UPLOAD_STEPS));
      this.upload.onprogress?.({ loaded: (file.size * step) / UPLOAD_STEPS });
    }
    if (this.#isAborted) return;
    try {
      const answer = await this.answer({ method: this.#method, headers: this.#headers, body: file });
      this.response = await answer.json().catch(() => null);
      this.status = answer.status;
    } finally {
      this.onloadend?.();
    }
  }

  /** Where the request goes. */
  protected abstract answer(init: RequestInit): Promise<Response>;
}
