for (const button of document.querySelectorAll("button[data-copies]")) {
  const box = document.getElementById(button.dataset.copies);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(box.textContent);
    } catch {
      getSelection().selectAllChildren(box);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
