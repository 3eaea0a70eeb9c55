// What a page adds to its HTML: light and dark, tips under the pointer, tables that sort and filter.
"use strict";

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
const toggle = document.getElementById("theme");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
const nameToggle = () => { toggle.textContent = isDark() ? "Light" : "Dark"; };
toggle.hidden = false;
nameToggle();
dark.addEventListener("change", nameToggle);
toggle.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  nameToggle();
});

const tip = document.getElementById("tip");
document.addEventListener("pointermove", (event) => {
  const over = event.target.closest?.("[data-tip]");
  tip.hidden = !over;
  if (!over) return;
  tip.textContent = over.dataset.tip;
  const { offsetWidth: wide, offsetHeight: tall } = tip;
  const x = Math.min(event.clientX + 14, innerWidth - wide - 8);
  const y = event.clientY - tall - 12;
  tip.style.left = `${Math.max(x, 8)}px`;
  tip.style.top = `${y < 8 ? event.clientY + 18 : y}px`;
});

const valueOf = (row, column) => {
  const cell = row.cells[column];
  const value = cell.dataset.sort ?? cell.textContent;
  return value !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
};
const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const heading = button.closest("th");
      const rising = heading.ariaSort !== "ascending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => (rising ? 1 : -1) * compare(valueOf(a, column), valueOf(b, column)));
      table.tBodies[0].append(...rows);
    });
  });
}

for (const field of document.querySelectorAll("input[data-filters]")) {
  const table = document.getElementById(field.dataset.filters);
  const found = document.getElementById(`found-${field.dataset.filters}`);
  field.closest(".search").hidden = false;
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    found.textContent = words.length ? `${shown} of ${table.tBodies[0].rows.length}` : "";
  });
}

const measure = (frame) => frame.classList.toggle("beyond", frame.scrollWidth > frame.clientWidth + 1);
const frames = new ResizeObserver((seen) => seen.forEach(({ target }) => measure(target)));
for (const frame of document.querySelectorAll(".scroll")) frames.observe(frame);
