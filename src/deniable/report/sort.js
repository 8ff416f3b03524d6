"use strict";
// Tables that sort: each heading becomes a button; aria-sort says what is sorted, and how.
(() => {
  const key = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.sort;
    return number === undefined ? cell.textContent.trim() : number === "" ? null : Number(number);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  // What is missing stays last, whichever way a column is sorted.
  const order = (a, b, sign) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b));

  const sort = (table, headings, column) => {
    const down = headings[column].getAttribute("aria-sort") === "ascending";
    headings.forEach((heading, place) => {
      if (place === column) heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [key(row, column), row]);
    rows.sort((a, b) => order(a[0], b[0], down ? -1 : 1));
    body.append(...rows.map((pair) => pair[1]));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const headings = Array.from(table.tHead.rows[0].cells);
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, headings, column));
      heading.append(button);
    });
  }
})();
